"""A real cluster behind the gate: requests that the gate allows are forwarded to its brokers.

`cluster` knows the brokers and their API versions. `connection` is one connection to a broker, and
`pipeline` sends the requests of one client on it. `forwarding` has the common way of all requests.
`handlers` lists the API keys, of which some have modules of their own.
"""
