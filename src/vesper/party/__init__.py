"""The two institutions: `DataParty` holds graph and features, `LabelParty` holds labels."""
