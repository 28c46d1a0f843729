"""A real cluster behind the gate: requests that the gate allows are forwarded to its brokers.

The modules `cluster`, `topics` and `subscriptions` hold the gateway's knowledge of it. A `pipeline`
sends the requests of one client on a `connection`. All requests share the code in `forwarding`, and
`handlers` lists the API keys.
"""
