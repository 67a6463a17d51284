#!/usr/bin/perl
# A participant in the pass pool (.github/CPU-PASSES.md) in another language: participant.pl K CMD ARGS...
use strict;
use warnings;
use Fcntl qw(:DEFAULT :flock F_SETFD);
use POSIX ();

my ($passes, @command) = @ARGV;
my $pool = $ENV{LEADSMAN_POOL_DIR};
exec @command or exit 127 if defined $ENV{LEADSMAN_PASSES_HELD};
open my $size_file, '<', "$pool/size" or exit 1;
chomp(my $size = <$size_file>);
exit 125 unless $passes =~ /\A[0-9]{1,9}\z/ and $passes >= 1 and $passes <= $size;

sysopen my $turnstile, "$pool/turnstile.lock", O_RDWR | O_CREAT, 0600 or exit 1;
flock $turnstile, LOCK_EX or exit 1;
my %held;
while (keys %held < $passes) {
    for my $slot (sort { rand() <=> 0.5 } 0 .. $size - 1) {
        next if $held{$slot} or keys %held == $passes;
        sysopen my $file, "$pool/slot-$slot.lock", O_RDWR | O_CREAT, 0600 or exit 1;
        next unless flock $file, LOCK_EX | LOCK_NB;
        truncate $file, 0;
        syswrite $file, "pid=$$ passes=$passes since=" . time . " label=perl\n";
        POSIX::dup2(fileno $file, 100 + $slot);    # what POSIX makes is inherited
        $held{$slot} = 1;
    }
    select undef, undef, undef, 0.01 if keys %held < $passes;
}
close $turnstile;
$ENV{LEADSMAN_PASSES_HELD} = $passes;
exec @command or exit 127;
