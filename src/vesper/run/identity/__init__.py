"""Who a party is: names, private keys, requests, the authority that signs them, credentials."""
