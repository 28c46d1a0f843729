"""The error that tells a user why there is no answer."""


class InputError(Exception):
    """A job cannot answer from what it was given; the message says what is missing."""


class LogError(OSError):
    """A log that was named is not there, cannot be read, or is none; the message says which."""
