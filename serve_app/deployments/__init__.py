"""Ray Serve: adapters around the parts, and the application that joins them. Ray lives here."""
