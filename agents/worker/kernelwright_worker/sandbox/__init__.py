"""How jobs are kept from the system and from each other."""
