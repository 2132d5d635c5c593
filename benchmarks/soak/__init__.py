"""Long runs: does memory stay bounded, and the rate steady?"""
