"""TLS of a listener: its settings, the key and trust stores they name, and an SSLContext of them.

`settings` alone is cheap to import; the others need the package cryptography.
"""
