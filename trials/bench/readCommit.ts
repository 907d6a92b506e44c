import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** What a folder has checked out, in words: `commit 7840740d`, `commit 7840740d, changed`, or `no commit`. */
export async function readCommit(folder: string): Promise<string> {
  try {
    const git = async (...parameters: string[]) => (await run('git', ['-C', folder, ...parameters])).stdout.trim()
    const commit = await git('rev-parse', '--short=8', 'HEAD')
    return `commit ${commit}${(await git('status', '--porcelain')) === '' ? '' : ', changed'}`
  } catch {
    return 'no commit'
  }
}
