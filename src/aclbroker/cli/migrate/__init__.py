"""The command `aclbroker migrate`: ACLs from one place to another.

`places` has the places, `plan` says what has to change, `moving` does it and compares, `following`
does it again whenever the source changes, and `command` has the options.
"""
