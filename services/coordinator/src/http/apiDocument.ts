import type { OpenAPIHono } from '@hono/zod-openapi'
import type { AppEnv } from './context.ts'

/** The OpenAPI document of an app. It is written when it is first asked for, with all routes that the app has then. */
export function createDocument(
  app: OpenAPIHono<AppEnv>,
  { publicUrl, version, sessionCookie }: { publicUrl: string; version: string; sessionCookie: string },
) {
  app.openAPIRegistry.registerComponent('securitySchemes', 'session', {
    type: 'apiKey',
    in: 'cookie',
    name: sessionCookie,
  })
  let document: ReturnType<typeof app.getOpenAPI31Document> | undefined
  return () => {
    document ??= app.getOpenAPI31Document({
      openapi: '3.1.0',
      info: {
        title: 'Countersign',
        version,
        description: 'Wallets whose every signature comes with a public proof. This interface only grows.',
        license: { name: 'AGPL-3.0-only' },
      },
      servers: [{ url: publicUrl }],
    })
    return document
  }
}
