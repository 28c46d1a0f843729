"""The clusters that can stand behind the gate.

A `Backend` answers the part of a request that the gate allows. `declared` has the topics and groups
that the configuration names, which keep nothing; `memory` is a cluster kept in memory.
"""
