"""Alerts: what staff have to know about the machinery. It lies below the features, so that each can raise one."""
