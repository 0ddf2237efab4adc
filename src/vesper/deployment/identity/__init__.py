"""Certificates by which the parties know each other.

request       private keys and certificate requests of a party
authority     the authority that signs requests
credentials   certificate, key and authority, checked before TLS uses them
revocation    list of certificates that are accepted no longer
"""
