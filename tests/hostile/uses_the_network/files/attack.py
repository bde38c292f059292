import socket
import targets
import urllib.request


def run():
    targets.attempt("tcp", lambda: socket.create_connection(("127.0.0.1", targets.PORT), timeout=5))
    targets.attempt("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    targets.attempt("unix", lambda: socket.socket(socket.AF_UNIX))
    targets.attempt("pair", socket.socketpair)
    targets.attempt("http", lambda: urllib.request.urlopen(f"http://127.0.0.1:{targets.PORT}/", timeout=5))
