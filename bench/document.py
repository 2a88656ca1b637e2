def write(*_): pass
