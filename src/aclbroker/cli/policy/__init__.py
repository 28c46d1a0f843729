"""The command `aclbroker policy apply`: a policy file's ACLs into a cluster.

`plan` says what has to change, `lockout` whether who applies it could undo it, and `command` asks
and does it.
"""
