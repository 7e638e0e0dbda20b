// Three libraries that nobody here wrote read the metadata, register, get tokens,
// have them checked and end them. usage: node clients.mjs BASE
import assert from 'node:assert/strict'
import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import * as jose from 'jose'

const base = process.argv[2]
const insecure = { [oauth.allowInsecureRequests]: true } // plain http on loopback
const done = []
const step = async (name, run) => {
  try {
    const result = await run()
    done.push(name)
    return result
  } catch (cause) {
    console.error(`oauth: ${name}:`, cause)
    process.exit(1)
  }
}
const refused = async (promise, code) => {
  const failure = await promise.then(() => null, (e) => e)
  const said = failure?.error ?? failure?.cause?.[0]?.parameters?.error ?? failure?.cause?.error
  const basic = failure?.cause?.[0]?.scheme === 'basic' && code === 'invalid_client'
  assert.ok(failure && (said === code || basic), `want ${code}, got ${failure?.code} ${said}`)
}

// Where are we? RFC 9728, RFC 8414 and OpenID's address of the same.
const resources = await step('RFC 9728 for the service and for /mcp', async () => {
  const found = []
  for (const address of [base, `${base}/mcp`]) {
    const response = await oauth.resourceDiscoveryRequest(new URL(address), insecure)
    found.push(await oauth.processResourceDiscoveryResponse(new URL(address), response))
    assert.equal(found.at(-1).resource, address)
  }
  assert.deepEqual(found[0].authorization_servers, [base])
  return found
})
const discover = async (algorithm) =>
  oauth.processDiscoveryResponse(new URL(base), await oauth.discoveryRequest(new URL(base), { ...insecure, algorithm }))
const server = await step('RFC 8414', () => discover('oauth2'))
assert.equal(server.issuer, base)
await step('the same at /.well-known/openid-configuration', async () => {
  const same = await discover('oidc')
  for (const [name, value] of Object.entries(server)) assert.deepEqual(same[name], value, name)
})

const register = async (metadata) =>
  oauth.processDynamicClientRegistrationResponse(await oauth.dynamicClientRegistrationRequest(server, metadata, insecure))
const client = await step('RFC 7591', async () => {
  const made = await register({ client_name: 'acceptance', redirect_uris: ['http://localhost/cb'], grant_types: ['authorization_code'], software_id: 'x' })
  assert.match(made.client_id, /^agt_/)
  assert.equal(made.client_secret_expires_at, 0)
  return made
})
await step('RFC 7591 refuses', () => refused(register({ client_name: '' }), 'invalid_client_metadata'))

const token = async (authentication, parameters = {}, of = client) =>
  oauth.processClientCredentialsResponse(server, of, await oauth.clientCredentialsGrantRequest(server, of, authentication, parameters, insecure))
const access = await step('RFC 6749 by client_secret_basic and client_secret_post', async () => {
  const posted = await token(oauth.ClientSecretPost(client.client_secret))
  assert.equal(posted.token_type, 'bearer')
  return token(oauth.ClientSecretBasic(client.client_secret), { resource: base, scope: server.scopes_supported.join(' ') })
})
assert.equal(access.scope, 'catalog:read checkout:create')
await step('RFC 6749 and RFC 8707 refuse', async () => {
  const good = oauth.ClientSecretBasic(client.client_secret)
  await refused(token(oauth.ClientSecretBasic('wrong')), 'invalid_client')
  await refused(token(oauth.ClientSecretPost('wrong')), 'invalid_client')
  await refused(token(good, { scope: 'support:read' }), 'invalid_scope')
  await refused(token(good, { resource: 'https://elsewhere.example' }), 'invalid_target')
})

await step('RFC 9068 by oauth4webapi', async () => {
  const request = new Request(`${base}/api/keys/free/status`, { headers: { authorization: `Bearer ${access.access_token}` } })
  const claims = await oauth.validateJwtAccessToken(server, request, base, { ...insecure, signingAlgorithms: ['EdDSA'] })
  assert.equal(claims.client_id, client.client_id)
})
await step('RFC 9068 by jose, with the key set of the service', async () => {
  const keys = jose.createRemoteJWKSet(new URL(server.jwks_uri))
  const { payload, protectedHeader } = await jose.jwtVerify(access.access_token, keys, {
    issuer: base, audience: base, typ: 'at+jwt', algorithms: ['EdDSA'], requiredClaims: ['jti', 'iat', 'exp', 'sub', 'client_id', 'scope'],
  })
  assert.equal(payload.sub, client.client_id)
  assert.equal(payload.exp - payload.iat, 3600)
  const { keys: published } = await (await fetch(server.jwks_uri)).json()
  const key = published.find((k) => k.kid === protectedHeader.kid)
  assert.equal(key.svc_purpose, 'access_token')
  assert.ok(published.every((k) => k.d === undefined))
  // A key of records signs no token: the resource refuses what it would sign.
  const other = jose.base64url.encode(JSON.stringify({ ...protectedHeader, kid: published.find((k) => k.svc_purpose === 'record').kid }))
  const forged = [other, ...access.access_token.split('.').slice(1)].join('.')
  assert.equal((await fetch(`${base}/api/keys/free/status`, { headers: { authorization: `Bearer ${forged}` } })).status, 401)
})
await step('a protected resource takes the token', async () => {
  const response = await oauth.protectedResourceRequest(access.access_token, 'GET', new URL(`${base}/api/keys/free/status`), undefined, undefined, insecure)
  assert.equal((await response.json()).plan, 'agent')
})
await step('RFC 6750: a 401 leads to the metadata', async () => {
  const failure = await oauth.protectedResourceRequest('a.b.c', 'GET', new URL(`${base}/api/keys/free/status`), undefined, undefined, insecure).then(() => null, (e) => e)
  assert.ok(failure instanceof oauth.WWWAuthenticateChallengeError)
  const [{ scheme, parameters }] = failure.cause
  assert.equal(scheme, 'bearer')
  assert.equal(parameters.error, 'invalid_token')
  assert.equal(parameters.scope, 'catalog:read')
  assert.deepEqual(await (await fetch(parameters.resource_metadata)).json(), resources[0])
})

const introspect = async (text) =>
  oauth.processIntrospectionResponse(server, client, await oauth.introspectionRequest(server, client, oauth.ClientSecretBasic(client.client_secret), text, insecure))
await step('RFC 7662', async () => {
  const live = await introspect(access.access_token)
  assert.equal(live.active, true)
  assert.equal(live.client_id, client.client_id)
  assert.deepEqual(await introspect('nothing'), { active: false })
})
await step('RFC 7009', async () => {
  const end = async (text) =>
    oauth.processRevocationResponse(await oauth.revocationRequest(server, client, oauth.ClientSecretPost(client.client_secret), text, insecure))
  await end('nothing')
  await end(access.access_token)
  assert.deepEqual(await introspect(access.access_token), { active: false })
  const response = await fetch(`${base}/api/keys/free/status`, { headers: { authorization: `Bearer ${access.access_token}` } })
  assert.equal(response.status, 401)
})

await step('openid-client: discovery, grant, introspection, revocation', async () => {
  const config = await openid.discovery(new URL(base), client.client_id, client.client_secret, undefined,
    { algorithm: 'oauth2', execute: [openid.allowInsecureRequests] })
  const granted = await openid.clientCredentialsGrant(config, { scope: 'catalog:read', resource: `${base}/mcp` })
  assert.equal(granted.scope, 'catalog:read')
  assert.equal((await openid.tokenIntrospection(config, granted.access_token)).active, true)
  await openid.tokenRevocation(config, granted.access_token)
  assert.equal((await openid.tokenIntrospection(config, granted.access_token)).active, false)
})

console.log(`oauth: ${done.length} steps passed: ${done.join('; ')}`)
