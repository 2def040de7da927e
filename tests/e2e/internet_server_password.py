PASSWORD = "open sesame"  # of the stand-in's SOCKS5 proxy
