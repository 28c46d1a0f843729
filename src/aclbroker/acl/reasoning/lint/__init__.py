"""What is wrong with a set of ACLs, or may be: findings with a proof and a fix.

`scopes` are the patterns and hosts that lie around those of an ACL, `standing` the ACLs that are
left and what they say together, `removal` what can go without any decision changing, `writing`
ACLs that are written as nobody means them, `power` those that allow more than they should,
`orphans` those of resources that are not there. `linting` looks for all of it.
"""
