"""The flips: questions that two sets of rules decide differently."""
