# SPDX-License-Identifier: Apache-2.0
"""Domain mode as an installation has it: names for sandboxes, TLS by a private authority, a resolver for the wildcard.

Everything lives on addresses of the loopback that this run alone uses, on the well-known ports that the clients insist
on. Clients run in a mount namespace of their own in which the resolver and the authority are the system's.
"""
import contextlib
import os
import random
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
from pathlib import Path

from conftest import Server

DOMAIN = "glovebox.test"


class Authority:
    """Signs certificates; what it needs is in one folder, where one that is there already is used again."""

    def __init__(self, folder: Path, days: int = 2):
        self.folder = folder
        self.certificate = folder / "ca.pem"
        if self.certificate.exists():
            return
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", days,
                      "-subj", "/CN=Glovebox test authority", "-keyout", folder / "ca.key", "-out", self.certificate,
                      "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")

    def sign(self, name: str, alternatives: str = f"DNS:{DOMAIN},DNS:*.{DOMAIN}", folder: Path | None = None) -> tuple[Path, Path]:
        """A certificate and key, of itself for the domain and everything below it; in that folder, or beside the authority."""
        key, request, out, extensions = ((folder or self.folder) / f"{name}.{end}" for end in ("key", "csr", "pem", "ext"))
        extensions.write_text(f"subjectAltName={alternatives}\nextendedKeyUsage=serverAuth\n")
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                      "-keyout", key, "-out", request)
        self._openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.folder / "ca.key",
                      "-set_serial", random.getrandbits(63), "-days", "1", "-extfile", extensions, "-out", out)
        return out, key

    @staticmethod
    def _openssl(*arguments) -> None:
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Resolver:
    """Answers every name below the domain with one address, and nothing else (RFC 1035, UDP)."""

    def __init__(self, address: str):
        self.address = address
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 53))
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                query, peer = self.socket.recvfrom(4096)
                with contextlib.suppress(ValueError, IndexError, struct.error):
                    self.socket.sendto(self._answer(query), peer)

    def _answer(self, query: bytes) -> bytes:
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode().lower())
            at += 1 + query[at]
        question = query[12:at + 5]
        kind, = struct.unpack_from(">H", query, at + 1)
        name = ".".join(labels)
        ours = name == DOMAIN or name.endswith("." + DOMAIN)
        answers = [b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 5, 4) + socket.inet_aton(self.address)] if ours and kind == 1 else []
        flags = 0x8180 if ours else 0x8183  # NXDOMAIN
        return query[:2] + struct.pack(">HHHHH", flags, 1, len(answers), 0, 0) + question + b"".join(answers)

    def close(self) -> None:
        self.socket.close()


def free_loopback() -> str:
    """An address of the loopback whose ports 53 and 443 nobody has."""
    for _ in range(50):
        address = f"127.{random.randrange(100, 250)}.{random.randrange(1, 250)}.{random.randrange(1, 250)}"
        with contextlib.suppress(OSError), socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind((address, 443))
            udp.bind((address, 53))
            return address
    raise RuntimeError("no free loopback address")


class DomainMode:
    def __init__(self, settings: str = ""):
        self.folder = Path(tempfile.mkdtemp(prefix="glovebox-domain-"))
        self.address = free_loopback()
        self.authority = Authority(self.folder)
        self.certificate, self.key = self.folder / "server.pem", self.folder / "server.key"
        self.install(*self.authority.sign("first"))
        self.resolver = Resolver(self.address)
        config = self.folder / "config.toml"
        config.write_text(f'domain = "{DOMAIN}"\n{settings}\n[tls]\nlisten = "{self.address}"\n'
                          f'certificate = "{self.certificate}"\nkey = "{self.key}"\n')
        self.server = Server("--config", str(config))
        system = Path("/etc/ssl/certs/ca-certificates.crt").read_text()
        self.bundle = self.folder / "bundle.crt"
        self.bundle.write_text(system + self.authority.certificate.read_text())
        (self.folder / "resolv.conf").write_text(f"nameserver {self.address}\noptions timeout:2 attempts:1\n")

    def install(self, certificate: Path, key: Path) -> None:
        """Puts a pair where the server reads it, each file at once."""
        for source, target in ((certificate, self.certificate), (key, self.key)):
            temporary = target.with_suffix(".new")
            shutil.copyfile(source, temporary)
            temporary.rename(target)

    def variables(self) -> dict[str, str]:
        """What a client needs; the addresses of localhost mode are not among it."""
        return {"E2B_API_KEY": self.server.key, "E2B_DOMAIN": DOMAIN, "NODE_EXTRA_CA_CERTS": str(self.authority.certificate),
                "SSL_CERT_FILE": str(self.bundle), "REQUESTS_CA_BUNDLE": str(self.bundle), "CURL_CA_BUNDLE": str(self.bundle)}

    def run(self, *command, timeout: float = 300, cwd=None, **more) -> subprocess.CompletedProcess:
        """Runs a client for which the resolver and the authority are the system's."""
        script = (f'mount --bind {self.folder}/resolv.conf "$(readlink -f /etc/resolv.conf)" && '
                  f'mount --bind {self.bundle} /etc/ssl/certs/ca-certificates.crt && exec "$@"')
        environment = {k: v for k, v in os.environ.items() if not k.startswith("E2B_")} | self.variables()
        return subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", *map(str, command)], env=environment,
                              timeout=timeout, capture_output=True, text=True, cwd=cwd, **more)

    def close(self) -> None:
        self.server.close()
        self.resolver.close()
        shutil.rmtree(self.folder, ignore_errors=True)
