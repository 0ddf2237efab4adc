"""The two ends of a session: what each says, hears, checks and keeps."""
