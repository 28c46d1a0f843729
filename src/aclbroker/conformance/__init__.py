"""The conformance suite: sends one set of requests to brokers and compares how they authorize them.

`corpus` has the requests and `roles` the ACLs under which each is sent. `session` sends them, and
`outline` reduces each answer to what is compared. `comparison` compares by the rules in `rules`,
and `divergences` names the intended differences. docs/conformance.md says how to use the suite.
"""
