import react from '@vitejs/plugin-react'
import { defaultClientConditions, defineConfig, type Plugin } from 'vite'
import { createBundle } from '../../scripts/bundle/createBundle.ts'

/** Serves the verifier as one program and as one page, to be saved and compared with a release before use. */
function serveVerifier(): Plugin {
  return {
    name: 'countersign-verifier',
    async generateBundle() {
      for (const { name, bytes } of await createBundle()) {
        this.emitFile({ type: 'asset', fileName: name, source: bytes })
      }
    },
    configureServer({ middlewares }) {
      middlewares.use(async (request, response, next) => {
        if (!/^\/(?:countersign-verify\.mjs|verify\.html)(?:\?|$)/.test(request.url ?? '')) return next()
        try {
          const found = (await createBundle()).find(({ name }) => request.url?.startsWith(`/${name}`))
          response.writeHead(200, { 'content-disposition': 'attachment' }).end(found?.bytes)
        } catch (error) {
          next(error)
        }
      })
    },
  }
}

export default defineConfig({
  // An .env file would change what is built.
  envDir: false,
  plugins: [react(), serveVerifier()],
  // Workspace packages export their TypeScript under `source`.
  resolve: { conditions: ['source', ...defaultClientConditions] },
  worker: { format: 'es' },
  build: {
    // Browsers without this feature load the same scripts a little later.
    modulePreload: { polyfill: false },
    // Vite loads the styles of a lazy part only once. After a failure, a retry would show the part without styles.
    cssCodeSplit: false,
  },
})
