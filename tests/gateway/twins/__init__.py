"""Two clusters that must answer alike: one with ACLs, and one without them behind a gateway.

`answers` compares two answers, `sides` starts the clusters and sends them the same requests,
`requests` makes random requests, and `stories` makes sequences as clients send them.
"""
