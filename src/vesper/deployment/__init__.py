"""Each party as a process on a network: its settings file, certificates, state folder and run.

config                       a party's TOML file
identity                     certificates
alignment                    common labelled ids, before a run
handshake, preflight         checks of one party, and of both, before a run
certificate_watch            certificates of both during a run: new files, expiry, revocation
peer_certificate             certificate of the peer before each connection to it
connect, state_folder        connection to the peer; the folder that a run resumes from
party_ledger                 a party's ledger, and what its run reserves there before it has a peer
starting_over                when a failed session may be discarded instead
data_process, label_process  the run of either party, from its file to its result
data_peers, own_graph        several data parties, one of them possibly in the same process
saved_run                    what a finished run leaves for predictions
local_pair                   both parties as processes on one machine
"""
