"""What a broker answers to whole dialogues about topics, records, groups and transactions.

The cases of `conformance.corpus` show who is refused what, and compare nothing else. Here stories
are told, each in a number of requests that follow from one another, about topics that are there;
all of each answer is compared, but what no two brokers have alike. Each story is told by users with
different rights.
"""
