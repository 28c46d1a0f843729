"""The gate: what each API key needs, how a request is refused, and what answers show. All is pure.

What is needed: `table` is the whole of it, one row an API key, in the words of `need`; `conditions`
has its named conditions and resources; `rights` asks the authorizer for what a row declares, and
`topics_known` says what must be known of topics before. `engine` does what follows from a row, and
`topics`, `offsets`, `transactions` and `tokens` what follows where an API has logic of its own.

How answers are made: `answers`, in the words of `echo`, with `refusals` that no echo declares.

What answers show: `shown`, in the words of `disclosure`; `showing` leaves out the rest, with
`places` and `viewer`. `harmless` names fields that only look as if they told something.
"""
