/** Shows the progress of an install: one line that is rewritten at a terminal, otherwise a line from time to time. */
export function showProgress(label, progress) {
  const { stderr } = process
  const startedMs = Date.now()
  const seconds = () => `${Math.round((Date.now() - startedMs) / 1000)} s`
  const count = () => (progress ? `, ${progress.countArrived()} of ${progress.total} packages` : '')

  if (stderr.isTTY) {
    const draw = () => stderr.write(`\r\x1b[K${label}${count()} (${seconds()})`)
    draw()
    const timer = setInterval(draw, 250)
    return (succeeded) => {
      clearInterval(timer)
      stderr.write(`\r\x1b[K${label}: ${succeeded ? 'done' : 'failed'} (${seconds()})\n`)
    }
  }
  stderr.write(`${label} …\n`)
  let shown = ''
  let silentTicks = 0
  const report = () => {
    silentTicks += 1
    const now = count()
    if (now === shown && silentTicks < 6) return
    shown = now
    silentTicks = 0
    stderr.write(`${label}${now} (${seconds()})\n`)
  }
  const timer = setInterval(report, 5_000)
  return (succeeded) => {
    clearInterval(timer)
    stderr.write(`${label}: ${succeeded ? 'done' : 'failed'} (${seconds()})\n`)
  }
}
