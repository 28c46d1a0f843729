"""The conformance suite: one set of requests, and whether two brokers authorize them alike.

`corpus` has the requests, `roles` the ACLs under which each is sent, `session` sends them,
`outline` keeps of an answer what is compared, `comparison` holds the rules, and `divergences` the
differences that are meant. docs/conformance.md says how it is used.
"""
