import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'

/** Checks whether the service in this container answers: `health.ts http|https PORT`. PORT in the environment takes precedence. */
const [scheme, port] = process.argv.slice(2)
const request = scheme === 'https' ? requestHttps : requestHttp
const call = request(
  // The enclave's key has no certificate; only a quote covers it.
  { host: '127.0.0.1', port: process.env.PORT || port, path: '/health', rejectUnauthorized: false },
  ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1),
)
call.on('error', () => process.exit(1))
call.end()
