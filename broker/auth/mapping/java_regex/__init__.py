r"""Java regular expressions, as Kafka's settings hold them, on Python's `re`.

What an expression matches here is what it matches in java.util.regex (Java 17 to 25), or it is
refused when it is compiled (`RegexError`), or, in the rare cases where that depends on the text,
when it is applied (`UndecidableError`).

Like Java's, the engine backtracks. Expressions that could take exponentially long are refused, and
so are texts beyond 1,000 characters; what remains is a polynomial whose degree is the number of
quantifiers that can take the same text. So expressions must come from the operator, and texts from
somebody who is vouched for: a certificate that a trusted CA has signed, a ticket of the KDC.
"""

from aclbroker.broker.auth.mapping.java_regex.cursor import RegexError
from aclbroker.broker.auth.mapping.java_regex.regex import JavaRegex, UndecidableError
from aclbroker.broker.auth.mapping.java_regex.replacement import Replacement

__all__ = ["JavaRegex", "RegexError", "Replacement", "UndecidableError"]
