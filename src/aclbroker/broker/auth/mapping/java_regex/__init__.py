r"""Java regular expressions, as Kafka's settings hold them, on Python's `re`.

What an expression matches here is what it matches in java.util.regex (Java 17 to 25), or it is
refused when it is compiled (`RegexError`), or, in the rare cases where that depends on the text,
when it is applied (`UndecidableError`).

Like Java's, the engine backtracks. Expressions that could take exponentially long are refused.
What the others may have to do with a text is counted before it is matched, and a text is refused
that could keep the engine, and so the broker, busy for more than some milliseconds. Expressions
must come from the operator all the same.
"""

from aclbroker.broker.auth.mapping.java_regex.cursor import RegexError
from aclbroker.broker.auth.mapping.java_regex.regex import JavaRegex, UndecidableError
from aclbroker.broker.auth.mapping.java_regex.replacement import Replacement

__all__ = ["JavaRegex", "RegexError", "Replacement", "UndecidableError"]
