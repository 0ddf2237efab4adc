"""One run between the parties, on either side and over any channel.

config, data_parties      settings and the data parties of a run, from files and options
contract, run_spec        what both parties approve, and what follows from it
doors                     the door of a run, within what is left of the budget
data_side, label_side     a whole session of either party
loop                      stages, epochs and batches of both sides
peer, peer_group          the other party, or several, as this side sees it
label_responses           randomised responses in place of labels
checkpoint, observer, journal     resuming a session, and watching one
result, metrics           what a run leaves behind, and how good it is
party_names               names of parties and hosts
"""
