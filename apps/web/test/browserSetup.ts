import { beforeEach } from 'vitest'
import { cleanup, configure } from 'vitest-browser-react/pure'

// Runs for each file. All files share one page and its modules, so `vitest-browser-react` registers its own hook only for the first file.
configure({ reactStrictMode: false })
beforeEach(() => cleanup())
