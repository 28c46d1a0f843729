"""SIGHUP while the broker starts; it imports nothing, so that it can be there early."""

import signal


class Hangup:
    """Remembers a SIGHUP that comes before the broker is ready, where it would end the process."""

    def __init__(self) -> None:
        self.has_come = False
        signal.signal(signal.SIGHUP, self._remember)

    def _remember(self, *_: object) -> None:
        self.has_come = True
