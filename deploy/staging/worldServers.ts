import { createServer, type Server } from 'node:http'
import { MOCK, type PasswordGuard, SILICON_HEADER } from '@countersign/service'
import { forward } from './forward.ts'

/** The pages of the identity provider, which browsers need, behind the password. */
export function createPagesServer({ guard, target }: { guard: PasswordGuard; target: string }): Server {
  return createServer((request, response) => {
    if (guard.check({ authorization: undefined, cookie: request.headers.cookie }) !== 'admitted') {
      const headers = { 'content-type': 'text/plain', [SILICON_HEADER]: MOCK }
      return void response.writeHead(401, headers).end('staging: give the password first\n')
    }
    // The provider has cookies of its own.
    forward(request, response, { targets: [target], withCredentials: true })
  })
}

/** A part of the world for other pods of a cluster, whose policies say who may. It leads to that part alone. */
export function createPodServer({ target }: { target: string }): Server {
  return createServer((request, response) => forward(request, response, { targets: [target] }))
}
