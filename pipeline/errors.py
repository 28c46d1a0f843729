"""The error that tells a user why there is no answer."""


class InputError(Exception):
    """A job cannot answer from what it was given; the message says what is missing."""
