/** The shape of the wallet while it is being fetched. */
export function WalletSkeleton({ label }: { label: string }) {
  return (
    <div className="wallet-grid">
      <p className="visually-hidden" role="status">
        {label}
      </p>
      {['account', 'send', 'history'].map((name) => (
        <div key={name} className={`card area-${name}`} aria-hidden="true">
          <div className="skeleton skeleton-line" />
          <div className="skeleton skeleton-title" />
          <div className="skeleton skeleton-block" />
        </div>
      ))}
    </div>
  )
}
