import react from '@vitejs/plugin-react'
import { defaultClientConditions, defineConfig } from 'vite'

export default defineConfig({
  plugins: [react()],
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
