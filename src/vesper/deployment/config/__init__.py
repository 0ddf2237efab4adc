"""A party's TOML file.

party_config         the file of a party with one peer
multi_party_config   the label party's file with several data parties
template             the file that a party starts from
"""
