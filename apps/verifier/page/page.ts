import { startPage } from './startPage.ts'
import { startWorker } from './startWorker.ts'

// The page starts a worker with its own script, because a page on disk can't load another file.
if (typeof document === 'undefined') startWorker()
else startPage()
