"""What the drop-ins share: how they ask Berth, and how they keep peace with the originals."""
