"""Files of ACLs, policies, groups, invariants and names, in every form that users have."""
