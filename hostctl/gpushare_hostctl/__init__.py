"""hostctl"""
