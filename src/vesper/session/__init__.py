"""One run between the parties, on either side and over any channel.

config, data_parties      settings and the data parties of a run, from files and options
contract, run_spec        what both parties approve, and what follows from it
run_reservation           what a run reserves of a budget before it contacts its peer
doors                     the door of a run, with noise planned for what was reserved
data_side, label_side     a whole session of either party
loop                      stages, epochs and batches of both sides
peer, peer_group          the other party, or several, as this side sees it
label_responses           randomised responses in place of labels
checkpoint, observer, journal     resuming a session, and watching one
result, metrics           what a run leaves behind, and how good it is
evaluation_file           predictions on validation nodes, for the curves of a report
party_names               names of parties and hosts
"""
