import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'

/** Whether the service in this container answers: `health.ts http|https PORT`. `PORT` in the environment counts more. */
const [scheme, port] = process.argv.slice(2)
const request = scheme === 'https' ? requestHttps : requestHttp
const call = request(
  // The key of an enclave is its own, and only a quote vouches for it.
  { host: '127.0.0.1', port: process.env.PORT || port, path: '/health', rejectUnauthorized: false },
  ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1),
)
call.on('error', () => process.exit(1))
call.end()
