import react from '@vitejs/plugin-react'
import { defaultClientConditions, defineConfig } from 'vite'

export default defineConfig({
  plugins: [react()],
  // Workspace packages export their TypeScript under `source`.
  resolve: { conditions: ['source', ...defaultClientConditions] },
  worker: { format: 'es' },
  // A browser without it loads the same scripts, a little later.
  build: { modulePreload: { polyfill: false } },
})
