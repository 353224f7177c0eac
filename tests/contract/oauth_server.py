"""The proxy's test server over HTTP behind OAuth: the SDK's authorization server, which lets everybody in.

Arguments: PORT, SECONDS that an access token holds. What tokens were given out is written to PROXIED_TOKENS, one a line.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from typing import Any

import uvicorn
from mcp.server.auth.provider import AccessToken, AuthorizationCode, ProviderTokenVerifier, RefreshToken, construct_redirect_uri
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthToken
from proxied_server import server
from pydantic import AnyHttpUrl


class Everybody:
    """Keeps all in memory."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        self.clients: dict[str, Any] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.refreshers: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> Any:
        return self.clients.get(client_id)

    async def register_client(self, client_info: Any) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: Any, params: Any) -> str:
        code = secrets.token_hex(16)
        self.codes[code] = AuthorizationCode(
            code=code, scopes=[], expires_at=time.time() + 60, client_id=client.client_id, code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri, redirect_uri_provided_explicitly=True, resource=params.resource,
        )  # fmt: skip
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client: Any, code: str) -> AuthorizationCode | None:
        return self.codes.get(code)

    async def exchange_authorization_code(self, client: Any, code: AuthorizationCode) -> OAuthToken:
        del self.codes[code.code]
        return self._given(client.client_id)

    async def load_refresh_token(self, client: Any, token: str) -> RefreshToken | None:
        return self.refreshers.get(token)

    async def exchange_refresh_token(self, client: Any, token: RefreshToken, scopes: list[str]) -> OAuthToken:
        del self.refreshers[token.token]
        return self._given(client.client_id, "renewed")

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self.tokens.get(token)
        return found if found and (found.expires_at or 0) > time.time() else None

    async def revoke_token(self, token: Any) -> None:
        self.tokens.pop(token.token, None)

    def _given(self, client: str, how: str = "given") -> OAuthToken:
        access, refresh = secrets.token_hex(16), secrets.token_hex(16)
        self.tokens[access] = AccessToken(token=access, client_id=client, scopes=[], expires_at=int(time.time()) + self.seconds)
        self.refreshers[refresh] = RefreshToken(token=refresh, client_id=client, scopes=[])
        with open(os.environ["PROXIED_TOKENS"], "a", encoding="utf-8") as file:
            file.write(f"{how} {access}\n")
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.seconds)


if __name__ == "__main__":
    port, holds = sys.argv[1:3]
    everybody: Any = Everybody(int(holds))
    at = f"http://127.0.0.1:{port}"
    server.settings.auth = AuthSettings(
        issuer_url=AnyHttpUrl(at),
        resource_server_url=AnyHttpUrl(f"{at}/mcp"),
        client_registration_options=ClientRegistrationOptions(enabled=True),
    )
    server._auth_server_provider = everybody
    server._token_verifier = ProviderTokenVerifier(everybody)
    uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=int(port), log_level="error")
