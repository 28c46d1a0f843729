"""The error of those who ask for an answer."""


class InputError(Exception):
    """A job cannot answer from what it was given; the message says what is missing."""
