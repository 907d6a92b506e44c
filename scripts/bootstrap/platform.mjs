let glibc

/** Slow on some machines, because it reads the network interfaces, so it runs only for an install. */
export function isGlibc() {
  process.report.excludeNetwork = true
  glibc ??= Boolean(process.report.getReport().header.glibcVersionRuntime)
  return glibc
}

/** Whether a lockfile entry's `os`, `cpu` and `libc` admit this machine, by npm's rules (`!win32` excludes). */
export function isForThisMachine({ os, cpu, libc }) {
  return (
    admits(os, () => process.platform) &&
    admits(cpu, () => process.arch) &&
    (process.platform !== 'linux' || admits(libc, () => (isGlibc() ? 'glibc' : 'musl')))
  )
}

function admits(list, getValue) {
  if (!list) return true
  const rules = [list].flat()
  const value = getValue()
  if (rules.includes(`!${value}`)) return false
  const wanted = rules.filter((rule) => !rule.startsWith('!'))
  return wanted.length === 0 || wanted.includes(value) || wanted.includes('any')
}
