import { beforeEach } from 'vitest'
import { cleanup, configure } from 'vitest-browser-react/pure'

// Runs for each file. The files share one page and its modules, so the hook of `vitest-browser-react` itself is there for the first only.
configure({ reactStrictMode: false })
beforeEach(() => cleanup())
