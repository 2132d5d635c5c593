"""What people say about predicted facts: accepted, rejected, withdrawn."""
